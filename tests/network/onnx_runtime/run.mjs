// Runs an ONNX model in onnxruntime, tensors from and to safetensors:
//   node run.mjs model.onnx INPUTS OUTPUTS [INPUTS OUTPUTS ...]
import { readFileSync, writeFileSync } from 'node:fs';
import ort from 'onnxruntime-node';

const TYPES = {
  F32: ['float32', Float32Array],
  I32: ['int32', Int32Array],
  I64: ['int64', BigInt64Array],
};

function readTensors(path) {
  const bytes = readFileSync(path);
  const headerBytes = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString('utf8', 8, 8 + headerBytes));
  const tensors = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const [type, ArrayType] = TYPES[entry.dtype];
    const [begin, end] = entry.data_offsets.map((offset) => 8 + headerBytes + offset);
    const data = new ArrayType(new Uint8Array(bytes.subarray(begin, end)).buffer);
    tensors[name] = new ort.Tensor(type, data, entry.shape);
  }
  return tensors;
}

function writeTensors(path, tensors) {
  const header = {};
  const parts = [];
  let offset = 0;
  for (const [name, tensor] of Object.entries(tensors)) {
    const dtype = Object.keys(TYPES).find((key) => TYPES[key][0] === tensor.type);
    const data = Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
    header[name] = { dtype, shape: tensor.dims.map(Number), data_offsets: [offset, offset + data.length] };
    offset += data.length;
    parts.push(data);
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(path, Buffer.concat([length, text, ...parts]));
}

const [model, ...files] = process.argv.slice(2);
// Warnings are wanted: of shapes that are not what the file says.
const session = await ort.InferenceSession.create(model, { logSeverityLevel: 2 });
for (let i = 0; i < files.length; i += 2) writeTensors(files[i + 1], await session.run(readTensors(files[i])));
