// A client of the shop. Its types come from docs/api/openapi.json, so this file does not compile if the API lacks a part
// that it uses.
import createClient from 'openapi-fetch';
import type { paths } from './api.js';

/** Places an order, is rejected, and reads the order. */
export async function run(baseUrl: string) {
  const api = createClient<paths>({ baseUrl });

  const price = { amount: 1250, currency: 'EUR' } as const;
  const cup = { productId: 'cup', name: 'Cup', price };
  const synced = await api.POST('/ordering/sync-catalog-product', { body: cup });
  if (!synced.data) throw new Error(JSON.stringify(synced.error));

  const params = { header: { 'Idempotency-Key': 'key-1' } };
  const order = { orderId: 'third', customerId: 'eve', productIds: ['cup'] };
  const placed = await api.POST('/ordering/place-order', { params, body: order });
  const repeated = await api.POST('/ordering/place-order', { params, body: order });
  const event = placed.data?.events[0];
  if (!event) throw new Error(JSON.stringify(placed.error));

  const rejected = await api.POST('/ordering/place-order', { body: order });
  if (!rejected.error || !('code' in rejected.error)) throw new Error('it is not rejected');
  const { code, detail } = rejected.error;
  // @ts-expect-error: no rejection has this code
  if (code === 'OrderLost') throw new Error(detail);

  const { partition, slot } = event;
  const query = { partition, slot, wait: 10_000 };
  const shown = await api.GET('/orders/{id}', { params: { path: { id: order.orderId }, query } });
  if (!shown.data) throw new Error(JSON.stringify(shown.error));
  const products: string[] = shown.data.row.lines.map(line => line.productId);

  // @ts-expect-error: the field takes a list
  const malformed = await api.POST('/ordering/place-order', { body: { ...order, productIds: 'cup' } });
  const fields = malformed.error && 'errors' in malformed.error && malformed.error.errors.map(({ field }) => field);

  return { event: event.type, repeated: repeated.data?.repeated, code, products, fields };
}
