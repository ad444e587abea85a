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
No readiness probe: no service stands before these pods. A container is ready when its start-up probe has succeeded once;
from then on a call a minute finds a process that hangs. The first has time enough on a small, busy machine.
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
