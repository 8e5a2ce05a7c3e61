// A client of the shop. OpenAPI Generator makes its package `shop` from docs/api/openapi.json.
//
// `client URL TOKEN WEAK_TOKEN` prints how it has read each answer. The second token has no scope.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"client/shop"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// The type of a problem, and its own words: a code, the end of a problem's type, or the gateway's message.
func read(err error) []string {
	problem, is := err.(*shop.GenericOpenAPIError)
	if !is {
		panic(fmt.Sprint("no problem: ", err))
	}
	var fields struct{ Code, Type, Message string }
	bytes, err := json.Marshal(problem.Model())
	check(err)
	check(json.Unmarshal(bytes, &fields))
	found := []string{name(problem.Model())}
	for _, word := range []string{fields.Code, fields.Type, fields.Message} {
		if word != "" {
			parts := strings.Split(word, ":")
			found = append(found, parts[len(parts)-1])
		}
	}
	return found
}

func name(model any) string {
	switch model := model.(type) {
	case shop.Malformed:
		return "Malformed"
	case shop.PlaceOrderRejection:
		return "PlaceOrderRejection"
	case shop.ScopeMissingOrGateway:
		if model.Gateway != nil {
			return "Gateway"
		}
	case shop.TooLargeOrGateway:
		if model.TooLarge != nil {
			return "TooLarge"
		}
	case shop.ViewNotReadyOrGateway:
		if model.ViewNotReady != nil {
			return "ViewNotReady"
		}
	}
	return fmt.Sprintf("%T", model)
}

func main() {
	url, token, weakToken := os.Args[1], os.Args[2], os.Args[3]
	config := shop.NewConfiguration()
	config.Servers = shop.ServerConfigurations{{URL: url}}
	api := shop.NewAPIClient(config).OrderingAPI
	with := func(token string) context.Context {
		return context.WithValue(context.Background(), shop.ContextAccessToken, token)
	}
	place := func(token, order string, products ...string) shop.ApiPlaceOrderRequest {
		return api.PlaceOrder(with(token)).PlaceOrderCommand(*shop.NewPlaceOrderCommand("eve", order, products))
	}
	refused := func(request shop.ApiPlaceOrderRequest) []string {
		_, _, err := request.Execute()
		return read(err)
	}

	once := place(token, "go", "p-1").IdempotencyKey("key-3")
	placed, _, err := once.Execute()
	check(err)
	repeated, _, err := once.Execute()
	check(err)
	event := placed.Events[0]
	get := func(slot int64, wait int32) (*shop.OrdersShown, error) {
		shown, _, err := api.GetOrdersRow(with(token), "go").Partition(event.Partition).Slot(slot).Wait(wait).Execute()
		return shown, err
	}
	shown, err := get(event.Slot, 10_000)
	check(err)
	var products []string
	for _, line := range shown.Row.Lines {
		products = append(products, line.ProductId)
	}
	var many []string
	for n := range 101 {
		many = append(many, fmt.Sprint("p-", n))
	}
	_, behind := get(event.Slot+1, 0)
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"repeated": []bool{placed.Repeated == nil, repeated.GetRepeated()},
		"products": products,
		"400":      refused(place(token, "a#b", "p-1")),
		"403":      refused(place(weakToken, "weak", "p-1")),
		"413":      refused(place(token, "many", many...)),
		"422":      refused(place(token, "go", "p-1")),
		"503":      read(behind),
		"reused":   refused(place(token, "go", "p-2").IdempotencyKey("key-3")),
	}))
}
