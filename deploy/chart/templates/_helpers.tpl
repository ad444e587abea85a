{{- define "edgeshare.selector" -}}
app.kubernetes.io/name: edgeshare
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "edgeshare.contract.labels" -}}
{{ include "edgeshare.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "edgeshare.removalHook" -}}
helm.sh/hook: post-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/*
The rules of a NetworkPolicy, of a list of who reaches which `ports`. There is none where `from` is empty: to Kubernetes a rule
from nobody in particular is one from everybody, which only the word `any` asks for here.
*/}}
{{- define "edgeshare.ingress" -}}
{{- $rules := list }}
{{- range . }}
{{- if and .ports .from }}
{{- $ports := list }}
{{- range .ports }}
{{- $ports = append $ports (dict "protocol" "TCP" "port" .) }}
{{- end }}
{{- $rule := dict "ports" $ports }}
{{- if not (kindIs "string" .from) }}
{{- $_ := set $rule "from" .from }}
{{- end }}
{{- $rules = append $rules $rule }}
{{- end }}
{{- end -}}
policyTypes: [Ingress]
ingress:
  {{- toYaml $rules | nindent 2 }}
{{- end }}

{{/*
Has a Prometheus Operator scrape these ports of the pods that the labels of `part` select. An allocation's namespace, pod and
container are of whom it belongs to, not of the pod that tells of it: so labels are honoured.
*/}}
{{- define "edgeshare.podMonitor" -}}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include .part .root | nindent 4 }}
    {{- with .root.Values.monitoring.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels:
      {{- include .part .root | nindent 6 }}
  podMetricsEndpoints:
    {{- range .ports }}
    - port: {{ . }}
      honorLabels: true
      relabelings:
        - sourceLabels: [__meta_kubernetes_pod_node_name]
          targetLabel: node
    {{- end }}
{{- end }}

{{- define "edgeshare.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* As little as both containers work with: root, because it owns the kubelet's folders, but with none of its powers. */}}
{{- define "edgeshare.securityContext" -}}
runAsUser: 0
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  {{- with . }}
  add: {{ toJson . }}
  {{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* What automountServiceAccountToken would mount into every container. */}}
{{- define "edgeshare.apiAccess" -}}
- name: api-access
  projected:
    sources:
      - serviceAccountToken:
          path: token
          # Not what the kubelet asks for by itself: such a token an API server may let live for a year.
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end }}

{{/* The NVIDIA container runtime reads these; any other ignores them. */}}
{{- define "edgeshare.env" -}}
- name: NVIDIA_VISIBLE_DEVICES
  value: all
# Without compute the runtime hides /dev/nvidia-uvm, which every CUDA program needs, and with it from the plugin's list.
- name: NVIDIA_DRIVER_CAPABILITIES
  value: compute,utility
{{- if .Values.driverRoot }}
- name: EDGESHARE_DRIVER_ROOT
  value: /driver
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Volumes of all three that ask the driver: where it lies, and whatever else is brought there. */}}
{{- define "edgeshare.driverVolumes" -}}
{{- with .Values.driverRoot }}
- name: driver-root
  hostPath:
    path: {{ . }}
    # A node without a driver has it, empty: what comes to lie there is seen.
    type: DirectoryOrCreate
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "edgeshare.driverMounts" -}}
{{- if .Values.driverRoot }}
- name: driver-root
  mountPath: /driver
  readOnly: true
  # A driver's container mounts it there once it runs.
  mountPropagation: HostToContainer
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
The device plugin's. It is ready while the kubelet has its list, so that an update goes on to the next node only then; a
kubelet that restarts makes it not ready for a moment, and no service stands before these pods. It is well as long as it
answers: a kubelet that does not is no reason to start it anew.
*/}}
{{- define "edgeshare.webProbes" -}}
startupProbe:
  httpGet: {path: /healthz, port: plugin-metrics}
  periodSeconds: 1
  failureThreshold: 180
readinessProbe:
  httpGet: {path: /readyz, port: plugin-metrics}
  periodSeconds: 10
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /healthz, port: plugin-metrics}
  periodSeconds: 60
  timeoutSeconds: 10
  failureThreshold: 3
{{- end }}

{{/*
By a call at a socket, with no readiness probe: a container is ready when its start-up probe has succeeded once; from then
on a call a minute finds a process that hangs. The first has time enough on a small, busy machine. `startsAt` is the port that
the first is asked at instead, where another pod of the node may have the socket.
*/}}
{{- define "edgeshare.probes" -}}
startupProbe:
  {{- if .startsAt }}
  httpGet: {path: /readyz, port: {{ .startsAt }}}
  {{- else }}
  exec:
    command: {{ toJson .command }}
  {{- end }}
  periodSeconds: 3
  timeoutSeconds: 10
  failureThreshold: 60
livenessProbe:
  exec:
    command: {{ toJson .command }}
  periodSeconds: 60
  timeoutSeconds: 10
  failureThreshold: 3
{{- end }}

{{/* Something where an update of share manager and device plugin starts a node's new pod before it ends the old one. */}}
{{- define "edgeshare.surges" -}}
{{- if not (has (toString (dig "rollingUpdate" "maxSurge" 0 .Values.updateStrategy)) (list "0" "0%" "<nil>")) -}}
surges
{{- end -}}
{{- end }}

{{/* Of share manager and device plugin. Terms of a node affinity are alternatives, so that they cannot be added to. */}}
{{- define "edgeshare.affinity" -}}
{{- if .Values.onlyLabelledNodes -}}
{{- if hasKey .Values.affinity "nodeAffinity" -}}
{{- fail "onlyLabelledNodes is a node affinity itself: leave it false, and add its labels edge/gpu.share and edge/tpu.share to affinity.nodeAffinity" -}}
{{- end -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions: [{key: edge/gpu.share, operator: In, values: ["true"]}]
      - matchExpressions: [{key: edge/tpu.share, operator: In, values: ["true"]}]
{{ end -}}
{{- with .Values.affinity }}{{ toYaml . }}{{ end -}}
{{- end }}
