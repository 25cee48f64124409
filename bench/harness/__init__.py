"""Orchestration, measuring and reporting of the benchmark workloads."""
