"""The rows of the report and the title of the chart of a simulation."""

from __future__ import annotations

from gpudev.texts.template import Text

TEXTS = {
    "simulation_requests": Text("requests"),
    "simulation_started": Text("started"),
    "simulation_rejected": Text("rejected by quota"),
    "simulation_gave_up": Text("gave up waiting"),
    "simulation_utilisation": Text("utilisation"),
    "simulation_median_wait": Text("median wait, hours"),
    "simulation_mean_wait": Text("mean wait, hours"),
    "simulation_long_wait": Text("9 of 10 waited less than, hours"),
    "simulation_fairness": Text("fairness"),
    "simulation_forecasts": Text("forecasts"),
    "simulation_error": Text("error of {name}, hours"),
    "simulation_bias": Text("bias of likely"),
    "simulation_coverage": Text("started in the likely window"),
    "simulation_promises_kept": Text("promises kept"),
    "simulation_chart": Text("Part of requests that waited at most so long"),
}
