"""The program that does to its attempt what programs should not do. Only a worker loads it, by its path."""
