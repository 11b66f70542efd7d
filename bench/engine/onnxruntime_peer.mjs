// Times an ONNX model of points in onnxruntime: node onnxruntime_peer.mjs MODEL.onnx BATCH POINTS THREADS [SECONDS]
// One line of JSON: {"clouds_per_second": .., "median_ms": .., "min_ms": .., "runs": ..}. The package is the one that the
// tests install (scripts/bootstrap.sh test).
import { createRequire } from 'node:module';

const require = createRequire(new URL('../../tests/network/onnx_runtime/run.mjs', import.meta.url));
const ort = require('onnxruntime-node');

const [model, ...numbers] = process.argv.slice(2);
const [batch, points, threads, seconds = 2] = numbers.map(Number);
if (!model || !(batch > 0 && points > 0 && threads > 0)) {
  console.error('usage: onnxruntime_peer.mjs MODEL.onnx BATCH POINTS THREADS [SECONDS]');
  process.exit(2);
}
const session = await ort.InferenceSession.create(model, { intraOpNumThreads: threads, interOpNumThreads: 1 });
const values = new Float32Array(batch * points * 3);
for (let i = 0, state = 1; i < values.length; ++i) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  values[i] = state / 2 ** 31 - 1;
}
const feeds = { points: new ort.Tensor('float32', values, [batch, points, 3]) };
for (let i = 0; i < 3; ++i) await session.run(feeds);
const times = [];
for (const begin = performance.now(); times.length < 5 || performance.now() - begin < seconds * 1000; ) {
  const start = performance.now();
  await session.run(feeds);
  times.push(performance.now() - start);
}
times.sort((a, b) => a - b);
const median = times[times.length >> 1];
console.log(
  JSON.stringify({ clouds_per_second: (1000 * batch) / median, median_ms: median, min_ms: times[0], runs: times.length }),
);
