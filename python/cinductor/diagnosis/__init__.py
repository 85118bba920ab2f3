"""Modules that show a user what happened: logs, traces, profiles, benchmarks, counters, bisection, notebooks."""
