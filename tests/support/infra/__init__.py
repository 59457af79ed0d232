"""The tools that operators install gpu-dev with, and what they make of `deploy/`, as values to be judged."""
