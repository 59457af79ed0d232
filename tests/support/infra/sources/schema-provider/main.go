// A provider that only knows what arguments there are. It stands in for a real one where that cannot be had, so that
// `tofu init`, `validate` and `test` with mocked providers can judge a configuration.
//
// The schema is in a file beside the program, named like it with .json after it. Nothing is ever made by it: whatever
// would need a cloud is left out, and ends the program.
package main

import (
	"context"
	"encoding/json"
	"os"
	"sort"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

type attribute struct {
	Type     json.RawMessage `json:"type"`
	Nested   *block          `json:"nested"`
	Nesting  string          `json:"nesting"`
	Required bool            `json:"required"`
	Optional bool            `json:"optional"`
	Computed bool            `json:"computed"`
}

type blockType struct {
	Block    block `json:"block"`
	Single   bool  `json:"single"`
	Required bool  `json:"required"`
}

type block struct {
	Attributes map[string]attribute `json:"attributes"`
	Blocks     map[string]blockType `json:"blocks"`
}

type provider struct {
	Address     string           `json:"address"`
	Provider    block            `json:"provider"`
	Resources   map[string]block `json:"resources"`
	DataSources map[string]block `json:"data_sources"`
}

func sorted[V any](of map[string]V) []string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (b block) attributes() []*tfprotov6.SchemaAttribute {
	attributes := []*tfprotov6.SchemaAttribute{}
	for _, name := range sorted(b.Attributes) {
		each := b.Attributes[name]
		made := &tfprotov6.SchemaAttribute{
			Name: name, Required: each.Required, Optional: each.Optional, Computed: each.Computed,
		}
		if each.Nested != nil {
			nesting := tfprotov6.SchemaObjectNestingModeSingle
			if each.Nesting == "list" {
				nesting = tfprotov6.SchemaObjectNestingModeList
			}
			made.NestedType = &tfprotov6.SchemaObject{Attributes: each.Nested.attributes(), Nesting: nesting}
		} else {
			found, err := tftypes.ParseJSONType(each.Type) //nolint:staticcheck // there is no other way from a file
			if err != nil {
				panic(name + ": " + err.Error())
			}
			made.Type = found
		}
		attributes = append(attributes, made)
	}
	return attributes
}

func (b block) schema() *tfprotov6.SchemaBlock {
	made := &tfprotov6.SchemaBlock{Attributes: b.attributes()}
	for _, name := range sorted(b.Blocks) {
		each := b.Blocks[name]
		nested := &tfprotov6.SchemaNestedBlock{
			TypeName: name, Block: each.Block.schema(), Nesting: tfprotov6.SchemaNestedBlockNestingModeList,
		}
		if each.Single {
			nested.MaxItems = 1
		}
		if each.Required {
			nested.MinItems = 1
		}
		made.BlockTypes = append(made.BlockTypes, nested)
	}
	return made
}

type server struct {
	// What is not written below is not there.
	tfprotov6.ProviderServer
	schema provider
}

func (s server) GetMetadata(context.Context, *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	return &tfprotov6.GetMetadataResponse{}, nil
}

func (s server) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	made := &tfprotov6.GetProviderSchemaResponse{
		Provider:          &tfprotov6.Schema{Block: s.schema.Provider.schema()},
		ResourceSchemas:   map[string]*tfprotov6.Schema{},
		DataSourceSchemas: map[string]*tfprotov6.Schema{},
	}
	for name, each := range s.schema.Resources {
		made.ResourceSchemas[name] = &tfprotov6.Schema{Block: each.schema()}
	}
	for name, each := range s.schema.DataSources {
		made.DataSourceSchemas[name] = &tfprotov6.Schema{Block: each.schema()}
	}
	return made, nil
}

func (s server) ValidateProviderConfig(_ context.Context, request *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: request.Config}, nil
}

func (s server) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (s server) ValidateDataResourceConfig(context.Context, *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

func (s server) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

func main() {
	text, err := os.ReadFile(os.Args[0] + ".json")
	if err != nil {
		panic(err)
	}
	var schema provider
	if err := json.Unmarshal(text, &schema); err != nil {
		panic(err)
	}
	err = tf6server.Serve(schema.Address, func() tfprotov6.ProviderServer { return server{schema: schema} })
	if err != nil {
		panic(err)
	}
}
