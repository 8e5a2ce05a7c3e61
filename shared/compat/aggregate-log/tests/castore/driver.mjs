// Drives the original library for the tests: one JSON request a line on stdin, one JSON answer a line on
// stdout, in order.
import { createInterface } from 'node:readline';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import core from '@castore/core';
import adapters from '@castore/event-storage-adapter-dynamodb';

const { EventStore, EventType } = core;
const { LegacyDynamoDBEventStorageAdapter, DynamoDBSingleTableEventStorageAdapter, ImageParser } =
  adapters;

const dynamoDBClient = new DynamoDBClient({
  endpoint: process.env.ENDPOINT,
  region: process.env.AWS_REGION ?? 'eu-west-1',
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
});

const eventTypes = ['CustomerRegistered', 'PointsAdded', 'CustomerDeactivated'].map(
  type => new EventType({ type }),
);

const reducer = (customer = { points: 0 }, { type, payload }) => {
  switch (type) {
    case 'CustomerRegistered':
      return { ...customer, name: payload.name, active: true };
    case 'PointsAdded':
      return { ...customer, points: customer.points + payload.points };
    default:
      return { ...customer, active: false };
  }
};

const store = (eventStoreId, eventStorageAdapter) =>
  new EventStore({ eventStoreId, eventTypes, reducer, eventStorageAdapter });

const single = tableName =>
  new DynamoDBSingleTableEventStorageAdapter({ tableName, dynamoDBClient });
const stores = {
  CUSTOMERS: store('CUSTOMERS', single(process.env.TABLE)),
  CARDS: store('CARDS', single(process.env.TABLE)),
  VOUCHERS: store('VOUCHERS', single(process.env.OTHER)),
  LEGACY: store(
    'CUSTOMERS',
    new LegacyDynamoDBEventStorageAdapter({ tableName: process.env.LEGACY, dynamoDBClient }),
  ),
};
const images = new ImageParser({ sourceEventStores: [stores.CUSTOMERS, stores.CARDS] });

const operations = {
  push: ({ store: name, event, force }) =>
    (stores[name] ?? store(name, single(process.env.TABLE))).pushEvent(event, { force }),
  group: ({ events }) =>
    EventStore.pushEventGroup(...events.map(({ store, event }) => stores[store].groupEvent(event))),
  events: ({ store, id, options }) => stores[store].getEvents(id, options),
  aggregate: ({ store, id, options }) => stores[store].getAggregate(id, options),
  list: ({ store, options }) => stores[store].listAggregateIds(options),
  image: ({ image }) => images.parseImage(image),
  item: ({ item }) => unmarshall(item),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { operation, ...input } = JSON.parse(line);
  let answer;
  try {
    answer = { ok: (await operations[operation](input)) ?? null };
  } catch ({ code, name, message, aggregateId, version }) {
    answer = { error: { code, name, message, aggregateId, version } };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
