{{- define "edgeshare.selector" -}}
app.kubernetes.io/name: edgeshare
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "edgeshare.labels" -}}
{{ include "edgeshare.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
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
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* The NVIDIA container runtime reads these; any other ignores them. */}}
{{- define "edgeshare.env" -}}
- name: NVIDIA_VISIBLE_DEVICES
  value: all
# Without compute the runtime hides /dev/nvidia-uvm, which every CUDA program needs, and with it from the plugin's list.
- name: NVIDIA_DRIVER_CAPABILITIES
  value: compute,utility
{{- with .Values.extraEnv }}
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
  periodSeconds: 5
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /healthz, port: plugin-metrics}
  periodSeconds: 60
  timeoutSeconds: 10
  failureThreshold: 3
{{- end }}

{{/*
By a call at a socket, with no readiness probe: a container is ready when its start-up probe has succeeded once; from then
on a call a minute finds a process that hangs. The first has time enough on a small, busy machine.
*/}}
{{- define "edgeshare.probes" -}}
startupProbe:
  exec:
    command: {{ toJson .command }}
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
