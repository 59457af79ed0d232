"""The kept plan of one GPU type: when and where each waiting request starts.

`grid` counts time in steps, `room` is what a node has free over time, `lengths` and `holes` find the first
gap of a length among all nodes, and `plan` keeps a slot for everybody who waits and only moves it earlier.
"""
