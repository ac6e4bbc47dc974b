"""OpenVINO's CPU plugin, for latency, in float32; the compiled model comes from a cache in the folder."""
import openvino as ov


class Peer:
    @staticmethod
    def compiled(model, threads, folder):
        core = ov.Core()
        options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1,
                   "INFERENCE_PRECISION_HINT": "f32", "CACHE_DIR": folder, "ENABLE_CPU_PINNING": False}
        return core.compile_model(model, "CPU", options)

    @staticmethod
    def prepare(model, threads, folder):
        Peer.compiled(model, threads, folder)

    def __init__(self, model, threads, folder, feed):
        self.model = self.compiled(model, threads, folder)
        self.request = self.model.create_infer_request()
        self.operands = {}
        for name, value in feed.items():
            self.operands[name] = ov.Tensor(value, shared_memory=False)
            self.request.set_tensor(name, self.operands[name])

    def run(self):
        self.request.start_async()
        self.request.wait()

    def result(self):
        return [self.request.get_output_tensor(i).data.copy() for i in range(len(self.model.outputs))]
