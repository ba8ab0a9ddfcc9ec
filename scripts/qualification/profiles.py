"""The steps of a qualification that nobody wrote a plan for, as many as fit into a time."""

_ALLREDUCE, _STEP = "bench_allreduce", "bench_ddp_step"
_MINUTE, _HOUR = 60, 3600  # seconds
_FEWEST_LAUNCHES = 2
_LEAST_SWEEP = 2  # seconds
_LEAST_STEPS = 10  # below that a number of them, so that a slow machine has a sample, too
_LEAST_SOAK = 20
_LEAST_FUZZ = 2
_LEAST_PERCENT = 5  # of a profile, before there are fewer replicates
_FILL = 0.95  # of the budget: launches are not equally long, and one may be tried again


def _bench(name, program, arguments, seconds, launches):
    return {"name": name, "program": program, "arguments": arguments, "seconds": seconds,
            "launches": launches}


class _Profile:
    """`sweep`: seconds of one; `catalogue`, `simulation`: of all scenarios; `fuzz`: of random
    programs; `soak`: of random faults. What is scaled: sweeps, random programs and faults, and the
    part of the scenarios that run."""

    def __init__(self, budget, launches, sweep, step, scenarios, catalogue, simulation, fuzz, soak):
        self.budget, self.launches, self.sweep, self.step = budget, launches, sweep, step
        self.scenarios, self.catalogue, self.simulation = scenarios, catalogue, simulation
        self.fuzz, self.soak = fuzz, soak

    def steps(self, fraction, launches):
        def scaled(seconds, least):
            return round(max(least, seconds * min(1, fraction)))
        sweep, step = scaled(self.sweep, _LEAST_SWEEP), scaled(self.step, _LEAST_SWEEP)
        part = min(1, fraction) if self.scenarios == ["*"] else 1
        budget = "--time-budget=%ds" % sweep
        how = ["--time-budget=%ds" % step] if step >= _LEAST_STEPS else ["-n", "3", "-w", "1"]
        seeds, seconds = self.simulation
        return [
            {"name": "doctor", "kind": "doctor", "seconds": 10},
            _bench("latency", _ALLREDUCE, ["-b", "8", "-e", "4K", budget], sweep + 6, launches),
            _bench("bandwidth", _ALLREDUCE, ["-b", "256K", "-e", "16M", budget], sweep + 10,
                   launches),
            _bench("barrier", "bench_barrier", [budget], sweep + 4, launches),
            _bench("ddp_step", _STEP, ["--model=resnet50"] + how, step + 14, launches),
            {"name": "catalogue", "kind": "stress", "scenarios": self.scenarios,
             "part": round(part, 4), "seconds": round(self.catalogue * part) + 10},
            {"name": "simulation", "kind": "simulation", "scenarios": self.scenarios,
             "part": round(part, 4), "repeat": seeds, "seconds": round(seconds * part) + 5},
            {"name": "fuzz", "kind": "fuzz", "seconds": scaled(self.fuzz, _LEAST_FUZZ)},
            {"name": "soak", "kind": "soak", "seconds": scaled(self.soak, _LEAST_SOAK),
             "launch_seconds": 30}]


PROFILES = {
    "quick": _Profile(5 * _MINUTE, 2, 2, 4, ["uneven_inputs/*"], 20, (2, 10), 5, 40),
    "standard": _Profile(1 * _HOUR, 5, 20, 40, ["*"], 300, (10, 120), 60, 900),
    "full": _Profile(8 * _HOUR, 10, 60, 180, ["*"], 900, (100, 1200), 300, 14400),
}


def total(steps, backends):
    """Seconds of all launches."""
    return sum(step["seconds"] * step.get("launches", 1) *
               (1 if step.get("kind") in ("doctor", "simulation", "fuzz", "soak") else backends)
               for step in steps)


def steps_of(profile, budget, backends):
    """The steps of a profile for `budget` seconds on so many backends; None when it is too short.
    Everything is made shorter alike; only then there are fewer replicates."""
    wanted = PROFILES[profile]
    share = budget / wanted.budget
    for launches in range(wanted.launches, _FEWEST_LAUNCHES - 1, -1):
        least = 1 if launches == _FEWEST_LAUNCHES else _LEAST_PERCENT
        for percent in range(min(100, round(100 * share)), least - 1, -1):
            steps = wanted.steps(percent / 100, launches)
            if total(steps, backends) <= _FILL * budget:
                return steps
    return None
