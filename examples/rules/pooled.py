"""Writes pooled.onnx: a projection of 256 tokens, then their mean."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

rng = np.random.default_rng(1)
tokens, wide, out = 256, 64, 48
weights = numpy_helper.from_array(rng.normal(0, wide**-0.5, (wide, out)).astype(np.float32), "W")
nodes = [
    helper.make_node("MatMul", ["x", "W"], ["projected"]),
    helper.make_node("ReduceMean", ["projected"], ["y"], axes=[0], keepdims=0),
]
graph = helper.make_graph(
    nodes,
    "pooled",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [tokens, wide])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [out])],
    [weights],
)
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "pooled.onnx")
