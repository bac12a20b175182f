import jsQR from 'jsqr';
import { describe, expect, test } from 'vitest';
import { qrCode, qrPath } from '../../src/text/qr';

/** Reads a code as a camera would, with another implementation. */
function scan(modules: boolean[][]): string | undefined {
  const [scale, quiet] = [4, 4];
  const width = (modules.length + 2 * quiet) * scale;
  const pixels = new Uint8ClampedArray(width * width * 4).fill(255);
  modules.forEach((row, r) =>
    row.forEach((dark, c) => {
      if (!dark) return;
      for (let y = 0; y < scale; y++) {
        for (let x = 0; x < scale; x++) {
          const at = (((r + quiet) * scale + y) * width + (c + quiet) * scale + x) * 4;
          pixels.fill(0, at, at + 3);
        }
      }
    }),
  );
  return jsQR(pixels, width, width)?.data;
}

describe('a QR code', () => {
  // One length for each version, and the longest of some.
  test.each([1, 14, 26, 27, 42, 62, 84, 106, 122, 123, 152, 180, 213, 251, 287, 331, 362, 412])(
    'of %i characters is read by another program',
    (length) => {
      const text = `https://host:4747/#code=${'0123456789abcdef'.repeat(30)}`.slice(0, length);
      expect(scan(qrCode(text)!)).toBe(text);
    },
  );

  test('has the size of its version, and text that is not ASCII', () => {
    expect(qrCode('a')!.length).toBe(21);
    expect(qrCode('a'.repeat(412))!.length).toBe(77);
    expect(scan(qrCode('https://müller.example/☂')!)).toBe('https://müller.example/☂');
  });

  test('does not exist for a text that does not fit', () => {
    expect(qrCode('a'.repeat(413))).toBeUndefined();
  });

  test('is drawn with one rectangle for each run', () => {
    expect(qrPath([[true, true, false, true], []])).toBe('M0 0h2v1h-2zM3 0h1v1h-1z');
  });
});
