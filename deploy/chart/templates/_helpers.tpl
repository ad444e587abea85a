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

{{- define "edgeshare.readiness" -}}
periodSeconds: 10
timeoutSeconds: 5
{{- end }}

{{/* Long enough for a small machine that is busy starting its pods; what it finds is a process that hangs. */}}
{{- define "edgeshare.liveness" -}}
initialDelaySeconds: 30
periodSeconds: 30
timeoutSeconds: 10
failureThreshold: 3
{{- end }}
