// node -e THIS FOLDER GIVEN GOT DIMS [ROUNDS]: one run of FOLDER/model.mjs on the bytes of all inputs in the file GIVEN, the
// outputs to the file GOT; DIMS are the model's own: [inputs, outputs]. Then the least seconds of so many runs, to stderr.
const [folder, given, got, text, rounds] = process.argv.slice(1);
const fs = require("node:fs");
const { pathToFileURL } = require("node:url");
const { resolve } = require("node:path");

// Between a row-major tensor and a port's memory, which may have room for more rows along one dim.
function pieces(port, dims) {
  const axis = Math.max(port.dims.findIndex((n, d) => n !== dims[d]), 0);
  const product = (list) => list.reduce((a, b) => a * b, 1);
  const row = product(dims.slice(axis + 1)) * port.data.BYTES_PER_ELEMENT;
  const memory = new Uint8Array(port.data.buffer, port.data.byteOffset, port.data.byteLength);
  const have = (dims[axis] ?? 1) * row, room = (port.dims[axis] ?? 1) * row;
  return Array.from({ length: product(dims.slice(0, axis)) }, (_, i) => memory.subarray(i * room, i * room + have));
}
(async () => {
  const { load } = await import(pathToFileURL(resolve(folder, "model.mjs")));
  const model = await load();
  const [inDims, outDims] = JSON.parse(text);
  const bytes = fs.readFileSync(given);
  let at = 0;
  model.inputs.forEach((port, i) => {
    for (const piece of pieces(port, inDims[i])) {
      piece.set(bytes.subarray(at, at + piece.length));
      at += piece.length;
    }
  });
  model.run();
  fs.writeFileSync(got, Buffer.concat(model.outputs.flatMap((port, i) => pieces(port, outDims[i]))));
  let least = Infinity;
  for (let i = 0; i < Number(rounds ?? 0); i++) {
    const begin = performance.now();
    model.run();
    least = Math.min(least, performance.now() - begin);
  }
  if (rounds) console.error(least / 1000);
})().catch((e) => {
  console.error(e.message);
  process.exit(1);
});
