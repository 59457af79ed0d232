"""Settings to adapters to application: the one package that knows everybody.

There are two graphs. `api` and `controller` each make one process of the service, on the `foundation`
that they share. `one_machine` runs those processes, with a PostgreSQL of their own, on one machine.
"""
