// Pins the Prometheus operator, whose kinds the chart's objects are held to. Nothing is built of it.
module edgeshare.test/prometheus-operator

go 1.26.6

require github.com/prometheus-operator/prometheus-operator v0.85.0
