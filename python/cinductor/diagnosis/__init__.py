"""What shows a user what happened: logs, traces, profiles, benchmarks, counters, bisection, notebooks."""
