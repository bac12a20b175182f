import { createHmac } from 'node:crypto';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { derivePageKey, proofs } from '../../src/protocol/access';
import { fromHex, hmacSha256, hmacWithoutBrowser, toHex } from '../../src/protocol/hmac';
import { randomHex, randomId } from '../../src/protocol/random';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

afterEach(() => vi.unstubAllGlobals());

describe('HMAC', () => {
  it('is the same by the browser, without it and by Node, for every length around a block', async () => {
    for (const length of [0, 1, 31, 32, 54, 55, 56, 63, 64, 65, 119, 120, 128, 1000]) {
      for (const keyLength of [1, 32, 64, 65, 131]) {
        const [key, message] = [bytes('k'.repeat(keyLength)), 'ä'.repeat(length)];
        const expected = createHmac('sha256', key).update(message).digest('hex');
        expect(toHex(await hmacSha256(key, message))).toBe(expected);
        expect(toHex(hmacWithoutBrowser(key, bytes(message)))).toBe(expected);
      }
    }
  });

  it('works where the browser offers none, as on plain http to another machine', async () => {
    const real = globalThis.crypto;
    vi.stubGlobal('crypto', { getRandomValues: (array: Uint8Array<ArrayBuffer>) => real.getRandomValues(array) });
    const expected = createHmac('sha256', 'key').update('message').digest('hex');
    expect(toHex(await hmacSha256(bytes('key'), 'message'))).toBe(expected);
    expect(randomId()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(randomHex(32)).toMatch(/^[0-9a-f]{64}$/);
    expect(toHex(fromHex('00ff10'))).toBe('00ff10');
  });
});

describe('proofs', () => {
  // The host has the same values in `page_access.rs`.
  it('are those of the host', async () => {
    const key = await derivePageKey('0123456789abcdef0123456789abcdef', 'http://127.0.0.1:4747');
    const [nonce, challenge] = ['0a'.repeat(32), 'A'.repeat(43)];
    expect([
      key,
      await proofs.host(key, nonce, challenge),
      await proofs.page(key, nonce, challenge),
      await proofs.socket(key, nonce, challenge),
    ]).toEqual([
      'c0af90b87f74759f9566a81ea4e072b491f49e88552857c0ee430bfca6383d76',
      'a698feaf1c64f5fadfcef8174c1da69dd6af642ca85d5c745196675a44fb7310',
      '9e3c89b3db4656ed3ad386239e420249747685a5eb141a63cfe04633a9cac3c9',
      '06ba5ef355a953eb62008b438d74ac9c394c52abef11e467bc3520a770df4e10',
    ]);
  });

  // The host keeps a digest of a named token: `page_access.rs` has the same values.
  it('are made with the digest of a named token', async () => {
    const token = `gt00112233445566aa${'0f'.repeat(32)}`;
    const key = await derivePageKey(token, 'http://127.0.0.1:4747');
    expect([key, await proofs.pairing(key, 'A'.repeat(43), token)]).toEqual([
      '4c33c21aa47ca81a52dfd735cb3477c12b6e65a52206cd3224fc5d743275d6f6',
      'd69d263d68c829796c4585429462c063669a9555897106c4bbd14ab90e6ed045',
    ]);
  });
});
