// Drives the original library: one JSON command a line on stdin, one JSON answer a line on stdout,
// {ok} or {error}. The operations, and the value of ok:
//
//   transact {id, events, ...how}  appends through a decider          -> {version}
//   hold     {id, events, ...how}  the same, but stops between its read and its write
//                                                                     -> "held", then "written"
//                                                                        or "refused" after "go"
//   query    {id, ...how}          reads through a decider            -> {state, version}
//   read     {id, from, to}        reads the events themselves        -> {events}
//   ingest   {spans, epoch}        indexes spans in the table INDEX, in epochs of so many batches
//                                                                     -> {ingested}
//
// how: strategy, codec ("raw", "deflate", "flushed", "brotli"), tip (the original's options),
// cached, load ("empty"), category.
import { createInterface } from "node:readline"
import zlib from "node:zlib"
import { DynamoDB } from "@aws-sdk/client-dynamodb"
import { CachingStrategy, Codec, Decider, MemoryCache, StreamId, StreamName } from "@equinox-js/core"
import {
  AccessStrategy,
  DynamoStoreCategory,
  DynamoStoreClient,
  DynamoStoreContext,
  EventsContext,
  QueryOptions,
  TipOptions,
} from "@equinox-js/dynamo-store"
import { AppendsPartitionId, DynamoStoreIndexer } from "@equinox-js/dynamo-store-indexer"

const { ENDPOINT: endpoint, TABLE: tableName, INDEX: indexName, CATEGORY = "Basket" } = process.env
const client = new DynamoStoreClient(
  new DynamoDB({
    endpoint,
    region: process.env.AWS_REGION ?? "eu-west-1",
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
    maxAttempts: 1,
  }),
)

const initial = { items: {}, closed: false }

function evolve(state, event) {
  const items = { ...state.items }
  switch (event.type) {
    case "Added":
      items[event.data.sku] = (items[event.data.sku] ?? 0) + event.data.quantity
      return { ...state, items }
    case "Removed":
      delete items[event.data.sku]
      return { ...state, items }
    case "Closed":
      return { ...state, closed: true }
    case "Snapshot":
      return event.data
    default:
      return state
  }
}
const fold = (state, events) => events.reduce(evolve, state)

/** Codecs that write one encoding; all of them read every one. */
function codec(name = "brotli") {
  const all = Codec.compress(Codec.json())
  if (name === "brotli") return all
  const plain = Codec.json()
  const flush = { finishFlush: zlib.constants.Z_SYNC_FLUSH }
  const packers = {
    raw: (text) => ({ encoding: 0, body: Buffer.from(text) }),
    deflate: (text) => ({ encoding: 1, body: zlib.deflateRawSync(text) }),
    flushed: (text) => ({ encoding: 1, body: zlib.deflateRawSync(text, flush) }),
  }
  const pack = (text) => (text === undefined ? undefined : packers[name](text))
  const encode = (event, context) => {
    const { data, meta, ...rest } = plain.encode(event, context)
    return { ...rest, data: pack(data), meta: pack(meta) }
  }
  return { decode: all.decode, encode }
}

const isOrigin = (event) => event.type === "Snapshot"
const toSnapshot = (state) => ({ type: "Snapshot", data: state })
const strategies = {
  unoptimized: () => AccessStrategy.Unoptimized(),
  latest: () => AccessStrategy.LatestKnownEvent(),
  snapshot: () => AccessStrategy.Snapshot(isOrigin, toSnapshot),
  snapshots: () => AccessStrategy.MultiSnapshot(isOrigin, (state) => [toSnapshot(state)]),
  rolling: () => AccessStrategy.RollingState(toSnapshot),
}

const context = (tip = {}, table = tableName) =>
  DynamoStoreContext.create({
    client,
    tableName: table,
    tip: TipOptions.create(tip),
    query: QueryOptions.create({}),
  })

const cache = new MemoryCache()

function decider({ id, strategy = "unoptimized", codec: name, tip, cached, category: of = CATEGORY }) {
  const caching = cached ? CachingStrategy.Cache(cache) : CachingStrategy.NoCache()
  const access = strategies[strategy]()
  const category = DynamoStoreCategory.create(
    context(tip), of, codec(name), fold, initial, caching, access,
  )
  return Decider.forStream(category, StreamId.create(id), undefined)
}

const load = ({ load }) => (load === "empty" ? { assumeEmpty: true } : { requireLeader: true })
const answer = (value) => process.stdout.write(JSON.stringify(value) + "\n")

let go = () => {}

async function hold(command) {
  let held = false
  const decide = async () => {
    if (!held) {
      held = true
      const gone = new Promise((resolve) => (go = resolve))
      answer({ ok: "held" })
      await gone
    }
    return command.events
  }
  try {
    // One attempt: a conflict is an error instead of another decision.
    await decider(command).transactAsync(decide, load(command), 1)
    answer({ ok: "written" })
  } catch {
    answer({ ok: "refused" })
  }
}

let indexer

const commands = {
  async ingest({ spans, epoch }) {
    const caching = CachingStrategy.Cache(cache)
    indexer ??= new DynamoStoreIndexer(context({}, indexName), caching, 1 << 20, 100_000, BigInt(epoch))
    const ingested = await indexer.ingestWithoutConcurrency(AppendsPartitionId.wellKnownId, spans)
    return { ingested }
  },
  async transact(command) {
    const version = await decider(command).transactVersion(() => command.events, load(command))
    return { version: Number(version) }
  },
  async query(command) {
    const read = ({ state, version }) => ({ state, version: Number(version) })
    return decider(command).queryEx(read, load(command))
  },
  async read({ id, from, to }) {
    const name = StreamName.create(CATEGORY, StreamId.create(id))
    const events = await new EventsContext(context()).read(name, from, to)
    const { decode } = codec()
    return { events: events.map((event) => ({ index: Number(event.index), ...decode(event) })) }
  },
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line)
  if (command.operation === "go") go()
  else if (command.operation === "hold") void hold(command)
  else {
    try {
      answer({ ok: await commands[command.operation](command) })
    } catch (error) {
      answer({ error: `${error.name}: ${error.message}` })
    }
  }
}
