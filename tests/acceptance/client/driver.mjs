// For the tests: checks documents and values, runs a client and a state machine, and has scripts for pages. It reads one
// JSON request a line on stdin, and writes one JSON answer a line on stdout, in order. A check answers a text for each
// fault.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { registerSchema, validate } from '@hyperjump/json-schema/draft-2020-12';
import '@hyperjump/json-schema/draft-07';
import '@hyperjump/json-schema/openapi-3-1';

const here = name => new URL(name, import.meta.url);
const find = createRequire(import.meta.url).resolve;
const read = file => JSON.parse(readFileSync(file));
const text = ({ instanceLocation, absoluteKeywordLocation }) =>
  `${instanceLocation}: ${absoluteKeywordLocation}`;

/** The faults of a value, by the schema of this URI. */
const wrong = async (uri, value) => ((await validate(uri, value, 'BASIC')).errors ?? []).map(text);

const asyncapi = read(find('@asyncapi/specs/schemas/3.0.0.json'));
registerSchema(asyncapi);

let count = 0;
/** The faults of values, by a schema of JSON Schema 2020-12. Throws if the schema is invalid. */
const valid = async (schema, ...values) => {
  const uri = `https://schemas.example/${(count += 1)}`;
  registerSchema(schema, uri, 'https://json-schema.org/draft/2020-12/schema');
  const check = await validate(uri);
  return values.flatMap(value => (check(value, 'BASIC').errors ?? []).map(text));
};

/** Functions of newer versions of Node.js that the runner of state machines needs. */
Promise.withResolvers ??= () => {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
};

/** Invokes a function by Lambda's API. An error of the function is thrown under its name. */
const invoke = async (lambda, name, payload) => {
  const body = JSON.stringify(payload);
  const answer = await fetch(`${lambda}/2015-03-31/functions/${name}/invocations`, { method: 'POST', body });
  const document = await answer.json();
  if (!answer.headers.has('x-amz-function-error')) return document;
  throw Object.assign(new Error(document.errorMessage), { name: document.errorType });
};

/** The tasks of a state machine, also those inside of its maps, as `[name, state]`. */
const tasks = machine =>
  Object.entries(machine.States).flatMap(([name, state]) =>
    state.Type === 'Task' ? [[name, state]] : state.ItemProcessor ? tasks(state.ItemProcessor) : []);

/** The path of a document that takes this path, such as `/orders/{id}`. */
const template = (paths, path) =>
  path in paths ? path : Object.keys(paths).find(name => pattern(name).test(path));
// A parameter is a segment; the id of a row, at the end, may contain `/`.
const pattern = name => new RegExp(`^${name.replace(/\{id\}$/, '.+').replace(/\{\w+\}/g, '[^/]+')}$`);

const operations = {
  openapi: ({ file }) => wrong('https://spec.openapis.org/oas/3.1/schema-base', read(file)),

  asyncapi: ({ file }) => wrong(asyncapi.$id, read(file)),

  values: ({ schema, values }) => valid(schema, ...values),

  /** Checks answers `[method, path, status, content type, body]` of a stack against its document of OpenAPI. */
  async answers({ file, answers }) {
    const { paths, components } = read(file);
    const found = value => value?.$ref?.split('/').slice(1).reduce((it, name) => it[name], { components }) ?? value;
    const check = async ([method, path, status, type, body]) => {
      const { responses = {} } = paths[template(paths, path)]?.[method.toLowerCase()] ?? {};
      const { schema } = found(responses[status] ?? responses.default)?.content[type] ?? {};
      const errors = schema ? await valid({ ...schema, components }, body) : ['is not in the document'];
      return errors.map(error => `${method} ${path} ${status} ${JSON.stringify(body)}: ${error}`);
    };
    return (await Promise.all(answers.map(check))).flat();
  },

  /**
   * Makes the types of a client from a document of OpenAPI, and compiles the client under the strictest checks. The
   * result is kept until one of its files changes.
   */
  async compile({ file }) {
    const hash = createHash('sha256');
    for (const input of [file, ...['client.ts', 'driver.mjs', 'package-lock.json'].map(here)]) hash.update(readFileSync(input));
    const [state, marker] = [hash.digest('hex'), here('compiled')];
    if (existsSync(marker) && readFileSync(marker, 'utf8') === state) return [];
    const { default: openapiTS, astToString } = await import('openapi-typescript');
    const { default: ts } = await import('typescript');
    writeFileSync(here('api.d.ts'), astToString(await openapiTS(read(file))));
    const program = ts.createProgram([here('client.ts').pathname], {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noEmitOnError: true,
      skipLibCheck: true,
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
      types: [],
    });
    const host = { getCurrentDirectory: () => '', getCanonicalFileName: name => name, getNewLine: () => '\n' };
    const diagnostics = program.emit().diagnostics.map(diagnostic => ts.formatDiagnostic(diagnostic, host));
    if (diagnostics.length === 0) writeFileSync(marker, state);
    return diagnostics;
  },

  /** The files of a folder that differ from the package of which they are copies. An update copies them again. */
  copy({ package: name, folder, update }) {
    const files = readdirSync(folder).map(file => [here(`node_modules/${name}/${file}`), `${folder}/${file}`]);
    const differ = files.filter(([from, to]) => !readFileSync(from).equals(readFileSync(to)));
    if (!update) return differ.map(([, to]) => `${to}: UPDATE=1 cargo test --test acceptance copies it`);
    for (const [from, to] of differ) writeFileSync(to, readFileSync(from));
    return [];
  },

  /**
   * Runs a state machine whose tasks are functions of `lambda`, without waits between tries. Answers how the execution of
   * this name ended, and which tasks it tried.
   */
  async machine({ file, functions, lambda, execution, input }) {
    const { StateMachine } = await import('aws-local-stepfunctions');
    const arn = name => `arn:aws:lambda:eu-west-1:000000000000:function:${functions[name] ?? ''}`;
    const definition = JSON.parse(readFileSync(file, 'utf8').replace(/\$\{(\w+)\}/g, (_, name) => arn(name)));
    const [tried, taskResourceLocalHandlers, retryIntervalOverrides] = [[], {}, {}];
    for (const [name, { Resource }] of tasks(definition)) {
      taskResourceLocalHandlers[name] = async payload => {
        tried.push(name);
        return invoke(lambda, Resource.split(':').at(-1), payload);
      };
      retryIntervalOverrides[name] = 0;
    }
    const machine = new StateMachine(definition);
    const overrides = { taskResourceLocalHandlers, retryIntervalOverrides };
    const run = machine.run(input, { context: { Execution: { Name: execution } }, overrides });
    const ended = await run.result.then(() => null, error => error.message);
    return { ended, tried };
  },

  /** A script of a package, for a page. */
  script: ({ file }) => readFileSync(find(file), 'utf8'),

  /** Runs the compiled client. */
  run: async ({ api }) => (await import(here('client.js'))).run(api),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { operation, ...input } = JSON.parse(line);
  let answer;
  try {
    answer = { ok: await operations[operation](input) };
  } catch (error) {
    answer = { error: error.stack };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
