// Loads the module, gives its tensors places in its memory, and runs it. Types: model.d.mts.
const views = {
  f32: Float32Array, f64: Float64Array, f16: Uint16Array, bf16: Uint16Array,
  i8: Int8Array, u8: Uint8Array, bool: Uint8Array, i16: Int16Array, u16: Uint16Array,
  i32: Int32Array, u32: Uint32Array, i64: BigInt64Array, u64: BigUint64Array,
};
const failures = {
  1: "a kernel failed",
  2: "an index read from a tensor is out of range",
};

// From the web, or in node from a file. A string is relative to this file.
async function bytesOf(source) {
  if (typeof source === "string") source = new URL(source, import.meta.url);
  if (!(source instanceof URL)) return source;
  if (source.protocol === "file:" && typeof process === "object")
    return (await import("node:fs/promises")).readFile(source);
  const answer = await fetch(source);
  if (!answer.ok) throw new Error(`${source}: ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

export async function load(source = "model.wasm", weights = "model.weights") {
  const compiled = source instanceof WebAssembly.Module;
  const module = compiled ? source : await WebAssembly.compile(await bytesOf(source));
  const { exports } = await WebAssembly.instantiate(module, {});
  const { memory } = exports;
  const call = (what) => exports[`${description.prefix}_${what}`];

  // Places behind what the module has itself.
  let end = exports.__heap_base.value;
  const place = (bytes) => {
    const at = Math.ceil(end / 64) * 64;
    end = at + bytes;
    return at;
  };
  const outAt = description.outputs.map((port) => place(port.bytes));
  const inAt = description.inputs.map((port) => port.inside === undefined ? place(port.bytes) : outAt[port.inside]);
  const lists = place(4 * (inAt.length + outAt.length));
  const workspace = place(call("workspace")(1) >>> 0);
  const constants = place(description.constants);
  const pages = Math.ceil((end - memory.buffer.byteLength) / 65536);
  if (pages > 0) memory.grow(pages);
  new Uint32Array(memory.buffer, lists).set([...inAt, ...outAt]);
  if (description.constants) {
    const bytes = await bytesOf(weights);
    if (bytes.byteLength !== description.constants)
      throw new Error(`the constants have ${bytes.byteLength} bytes, not ${description.constants}`);
    new Uint8Array(memory.buffer, constants).set(bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes);
    new Uint32Array(memory.buffer, call("constants").value, 1)[0] = constants;
  }

  const port = (at) => (p, i) => {
    const View = views[p.type];
    return { ...p, data: new View(memory.buffer, at[i], p.bytes / View.BYTES_PER_ELEMENT) };
  };
  const inputs = description.inputs.map(port(inAt));
  const outputs = description.outputs.map(port(outAt));
  const run = (...given) => {
    given.forEach((values, i) => inputs[i].data.set(values));
    const code = call("run")(lists, lists + 4 * inAt.length, workspace, 0);
    if (code) throw new Error(failures[code] ?? `the run ends with ${code}`);
    return outputs.map((p) => p.data);
  };
  return { inputs, outputs, run };
}
