"""What is kept: the append-only journal, which is the truth, and MLflow as a projection of it."""
