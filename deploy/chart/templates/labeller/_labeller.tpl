{{/* Not the others' name: a selector of theirs is not to find these pods. */}}
{{- define "edgeshare.labellerSelector" -}}
app.kubernetes.io/name: edgeshare-labeller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "edgeshare.labellerLabels" -}}
{{ include "edgeshare.labellerSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* The labeller's: it reads what everybody may read, and writes nothing on the node. */}}
{{- define "edgeshare.userContext" -}}
runAsUser: {{ .Values.labeller.user }}
runAsGroup: {{ .Values.labeller.user }}
{{- if .Values.labeller.user }}
runAsNonRoot: true
{{- end }}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}
