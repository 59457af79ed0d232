"""The SSH proxy: leads SSH connections to dev servers through WebSockets, in a process of its own.

It speaks the contract of `wire.tunnel`. Nothing of a tunnel passes through the API, so neither slows the
other, and either can be restarted without the other.
"""
