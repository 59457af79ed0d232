"""Settings to adapters to application: the one package that knows everybody.

There are two graphs. `server` makes one process of the service, the API or a controller. `one_machine`
runs those processes, with a PostgreSQL of their own, on one machine.
"""
