"""Weeks of requests in minutes: the plan of the queue as it would have gone under another policy or fleet.

`trace` is what people asked for, recorded or made up by `workload`; `planned` and `fifo` are queues that it
is replayed through, `rivals` what else could have been told to those who wait, `findings` what came of it.
Nothing here has a database or a clock: time is what the trace says.
"""
