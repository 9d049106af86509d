"""A variant -> a stand-alone script that reproduces what its record says. Pure: it writes text, it runs nothing."""
