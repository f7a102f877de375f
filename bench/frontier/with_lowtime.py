# SPDX-License-Identifier: Apache-2.0
# The frontier of a network by the Python package lowtime (0.3.0): reads the network as JSON from standard input, prints
# the seconds it took to solve, the number of points, and time (ticks) and cost (J) of the last one.
import json
import sys
import time

try:
    import networkx
    from lowtime.cost_model import CostModel
    from lowtime.graph_utils import add_sink_node, add_source_node
    from lowtime.operation import CandidateExecutionOptions, ExecutionOption, Operation, OperationSpec
    from lowtime.solver import PhillipsDessouky
except ImportError:
    print("absent")
    sys.exit(0)


class Table(CostModel):
    """Costs of whole times as they were given."""

    def __init__(self, first, costs):
        self.first = first
        self.costs = costs

    def __call__(self, quant_time):
        return self.costs[quant_time - self.first]


problem = json.load(sys.stdin)
specs = []
for curve in problem["curves"]:
    options = [
        ExecutionOption(real_time=curve["first"] + k + 0.5, unit_time=1.0, cost=cost, knob=k)
        for k, cost in enumerate(curve["costs"])
    ]
    specs.append(OperationSpec(CandidateExecutionOptions(options), Table(curve["first"], curve["costs"])))
graph = networkx.DiGraph()
for k, which in enumerate(problem["operations"]):
    graph.add_node(k + 2, op=Operation(specs[which]))
for before, after in problem["edges"]:
    graph.add_edge(before + 2, after + 2)
add_source_node(graph, 0)
add_sink_node(graph, 1)
graph.graph["source_node"] = 0
graph.graph["sink_node"] = 1
begin = time.perf_counter()
points = 0
result = None
for result in PhillipsDessouky(graph).run():
    points += 1
print(time.perf_counter() - begin, points, result.quant_time, result.cost)
