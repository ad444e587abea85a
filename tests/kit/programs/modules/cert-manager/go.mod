// Pins cert-manager, whose kinds the documents' objects are held to. Nothing is built of it.
module edgeshare.test/cert-manager

go 1.26.6

require github.com/cert-manager/cert-manager v1.21.2
