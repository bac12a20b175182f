/**
 * HMAC-SHA-256, with the browser's own implementation if possible.
 *
 * Browsers offer it only to secure contexts (`https`, or `http` on loopback). A page of a host that listens for other
 * machines with `--insecure` is not secure, so there is a small implementation here.
 */

const BLOCK_BYTES = 64;

export async function hmacSha256(key: Uint8Array, message: string): Promise<Uint8Array> {
  const bytes = new TextEncoder().encode(message);
  // The types claim that it always exists; browsers do not.
  const subtle = globalThis.crypto.subtle as SubtleCrypto | undefined;
  if (!subtle) return hmacWithoutBrowser(key, bytes);
  const imported = await subtle.importKey('raw', exact(key), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return new Uint8Array(await subtle.sign('HMAC', imported, exact(bytes)));
}

export function hmacWithoutBrowser(key: Uint8Array, message: Uint8Array): Uint8Array {
  const block = new Uint8Array(BLOCK_BYTES);
  block.set(key.length > BLOCK_BYTES ? sha256(key) : key);
  const keyed = (pad: number, rest: Uint8Array): Uint8Array => {
    const whole = new Uint8Array(BLOCK_BYTES + rest.length);
    whole.set(block.map((byte) => byte ^ pad));
    whole.set(rest, BLOCK_BYTES);
    return sha256(whole);
  };
  return keyed(0x5c, keyed(0x36, message));
}

export function toHex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function fromHex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** The same bytes in a buffer of their own. */
function exact(bytes: Uint8Array): ArrayBuffer {
  return bytes.slice().buffer as ArrayBuffer;
}

// ---- SHA-256 (FIPS 180-4) -----------------------------------------------------------------------------------------

/** The first 32 bits of the fractional parts of roots of the first primes: square roots, cube roots. */
const [START, ROUND] = constants();

function constants(): [Uint32Array, Uint32Array] {
  const fraction = (value: number): number => Math.floor((value - Math.floor(value)) * 2 ** 32);
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return [Uint32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p))), Uint32Array.from(primes, cubeRoot)];
}

/** As above for a cube root. `Math.cbrt` is not exact in the last bits, so it is corrected with whole numbers. */
function cubeRoot(prime: number): number {
  const cubed = BigInt(prime) << 96n;
  let root = BigInt(Math.round(Math.cbrt(prime) * 2 ** 32));
  while (root ** 3n > cubed) root -= 1n;
  while ((root + 1n) ** 3n <= cubed) root += 1n;
  return Number(root & 0xffffffffn);
}

export function sha256(message: Uint8Array): Uint8Array {
  const blocks = Math.ceil((message.length + 9) / BLOCK_BYTES);
  const padded = new DataView(new ArrayBuffer(blocks * BLOCK_BYTES));
  new Uint8Array(padded.buffer).set(message);
  padded.setUint8(message.length, 0x80);
  padded.setUint32(padded.byteLength - 8, Math.floor(message.length / 2 ** 29));
  padded.setUint32(padded.byteLength - 4, (message.length * 8) % 2 ** 32);
  const hash = START.slice();
  for (let at = 0; at < padded.byteLength; at += BLOCK_BYTES) compress(hash, padded, at);
  const result = new DataView(new ArrayBuffer(32));
  hash.forEach((word, index) => result.setUint32(index * 4, word));
  return new Uint8Array(result.buffer);
}

const rotate = (word: number, by: number): number => (word >>> by) | (word << (32 - by));

function compress(hash: Uint32Array, padded: DataView, at: number): void {
  const words = new Uint32Array(64);
  for (let t = 0; t < 16; t++) words[t] = padded.getUint32(at + t * 4);
  for (let t = 16; t < 64; t++) {
    const [before15, before2] = [words[t - 15]!, words[t - 2]!];
    const small0 = rotate(before15, 7) ^ rotate(before15, 18) ^ (before15 >>> 3);
    const small1 = rotate(before2, 17) ^ rotate(before2, 19) ^ (before2 >>> 10);
    words[t] = words[t - 16]! + small0 + words[t - 7]! + small1;
  }
  let [a, b, c, d, e, f, g, h] = hash as unknown as [number, number, number, number, number, number, number, number];
  for (let t = 0; t < 64; t++) {
    const large1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const first = (h + large1 + ((e & f) ^ (~e & g)) + ROUND[t]! + words[t]!) | 0;
    const large0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const second = (large0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, index) => (hash[index] = hash[index]! + word));
}
