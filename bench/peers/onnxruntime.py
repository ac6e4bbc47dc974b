"""ONNX Runtime, its CPU provider, all optimisations; operands and results bound once."""
import onnxruntime as ort

from peers import output_shapes
import numpy as np


class Peer:
    @staticmethod
    def prepare(model, threads, folder):
        pass

    def __init__(self, model, threads, folder, feed):
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        for name, value in feed.items():
            self.binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value))
        self.outputs = []
        for name, shape in output_shapes(model):
            value = ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32))
            self.binding.bind_ortvalue_output(name, value)
            self.outputs.append(value)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def result(self):
        return [v.numpy() for v in self.outputs]
