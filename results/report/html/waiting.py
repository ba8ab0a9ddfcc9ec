"""Who waited for whom in a program that was watched, as tables."""

import collections

import units

_MOST_PLACES = 40


def tables(runs):
    """[(title, headers, rows)] of the runs that watched something."""
    return [(title if len(runs) == 1 else "%s of %s" % (title, run.label()), *table)
            for run in runs for title, *table in _tables(run)]


def _tables(run):
    ranks = run.rows("watch/ranks")
    if not ranks:
        return []
    places = run.rows("watch/places")
    caused, blamed = collections.Counter(), collections.defaultdict(collections.Counter)
    for row in run.rows("watch/waited_for"):
        place = places[row["place"]]
        caused[row["rank"]] += row["waited_ns"]
        blamed[place["rank"]][row["rank"]] += row["waited_ns"]
        blamed[_name(place)][row["rank"]] += row["waited_ns"]
    return [("Ranks", ["rank", "made wait", "waited", "most of it for", "came last", "calls"],
             _of_ranks(ranks, places, caused, blamed)),
            ("Places", ["where", "calls", "waited", "longest", "most of it for"],
             _of_places(places, blamed))]


def _name(place):
    where = place["call"] + (" at " + place["site"] if place["site"] else "")
    communicator = place["communicator"]
    return where + (", " + communicator if communicator not in ("", "world") else "")


def _most(blame):
    if not blame:
        return "–"
    rank, waited = blame.most_common(1)[0]
    return "rank %d (%.0f %%)" % (rank, 100 * waited / max(sum(blame.values()), 1))


def _of_ranks(ranks, places, caused, blamed):
    waited, last = collections.Counter(), collections.Counter()
    for place in places:
        waited[place["rank"]] += place["waited_ns"]
        last[place["rank"]] += place["came_last"]
    return [[row["rank"], units.duration(caused[row["rank"]]),
             units.duration(waited[row["rank"]]), _most(blamed[row["rank"]]),
             last[row["rank"]], row["calls"]]
            for row in sorted(ranks, key=lambda row: -caused[row["rank"]])]


def _of_places(places, blamed):
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for place in places:
        one = sums[_name(place)]
        one[0] += place["calls"]
        one[1] += place["waited_ns"]
        one[2] = max(one[2], place["longest_ns"])
    worst = sorted((item for item in sums.items() if item[1][1] > 0), key=lambda item: -item[1][1])
    return [[name, calls, units.duration(waited), units.duration(longest), _most(blamed[name])]
            for name, (calls, waited, longest) in worst[:_MOST_PLACES]]
