"""Fails on purpose, to see how a failed job explains itself: helio run -- python fails.py; helio explain last."""
import sys

import ray


@ray.remote(max_retries=0)
def divide(a, b):
    return a / b


ray.init()
print("dividing", flush=True)
try:
    ray.get(divide.remote(1, 0))
except ZeroDivisionError as error:
    print(f"task failed: {error}", file=sys.stderr, flush=True)
    sys.exit(3)
