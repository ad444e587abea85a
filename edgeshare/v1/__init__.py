"""edgeshare's own gRPC API, generated from proto/ by `make proto`."""
