"""A client of the shop. openapi-python-client makes its package `shop` from docs/api/openapi.json.

`client.py URL TOKEN WEAK_TOKEN` prints how it has read each answer. The second token has no scope.
"""

import json
import sys

from shop import AuthenticatedClient
from shop.api.ordering import get_orders_row, place_order
from shop.models import PlaceOrderCommand
from shop.types import UNSET


def read(answer):
    """The type of an answer, and its own words: a code, the end of a problem's type, or the gateway's message."""
    words = [getattr(answer, name, UNSET) for name in ('code', 'type_', 'message')]
    words = [str(getattr(word, 'value', word)) for word in words if word is not UNSET]
    return [type(answer).__name__, *(word.rsplit(':', 1)[-1] for word in words)]


def main(url, token, weak_token):
    client = AuthenticatedClient(base_url=url, token=token)

    def place(client, order_id, product_ids, key=UNSET):
        body = PlaceOrderCommand(order_id=order_id, customer_id='eve', product_ids=product_ids)
        return place_order.sync_detailed(client=client, body=body, idempotency_key=key)

    placed = place(client, 'python', ['p-1'], 'key-2').parsed
    repeated = place(client, 'python', ['p-1'], 'key-2').parsed
    slot = placed.events[0].slot
    partition = placed.events[0].partition
    shown = get_orders_row.sync('python', client=client, partition=partition, slot=slot, wait=10_000)
    answers = [
        place(client, 'a#b', ['p-1']),
        place(AuthenticatedClient(base_url=url, token=weak_token), 'weak', ['p-1']),
        place(client, 'many', [f'p-{n}' for n in range(101)]),
        place(client, 'python', ['p-1']),
        place(client, 'python', ['p-2'], 'key-2'),
        get_orders_row.sync_detailed('python', client=client, partition=partition, slot=slot + 1, wait=0),
    ]
    return {
        'repeated': [placed.repeated is UNSET, repeated.repeated],
        'products': [line.product_id for line in shown.row.lines],
        **{f'{answer.status_code}': read(answer.parsed) for answer in answers[:4] + answers[5:]},
        'reused': read(answers[4].parsed),
    }


print(json.dumps(main(*sys.argv[1:])))
