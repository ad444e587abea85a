{{- define "edgeshare.assignerSelector" -}}
app.kubernetes.io/name: edgeshare-assigner
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "edgeshare.assignerLabels" -}}
{{ include "edgeshare.assignerSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* Of the Job that renews certificates: no selector of the assigner's is to find its pods. */}}
{{- define "edgeshare.certificatesSelector" -}}
app.kubernetes.io/name: edgeshare-certificates
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "edgeshare.certificatesLabels" -}}
{{ include "edgeshare.certificatesSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* Something where pods that ask for a GPU are placed by the assigner: whoever asks it. */}}
{{- define "edgeshare.assigns" -}}
{{- if or .Values.assigner.enabled .Values.scheduler.enabled -}}
assigns
{{- end -}}
{{- end }}

{{/* Something where it runs beside a kube-scheduler of the release's own. Who enables the assigner has the cluster's ask it. */}}
{{- define "edgeshare.beside" -}}
{{- if and .Values.scheduler.enabled (not .Values.assigner.enabled) -}}
beside
{{- end -}}
{{- end }}

{{- define "edgeshare.assignerConfig" -}}
metrics_address: ":{{ .Values.assigner.metricsPort }}"
{{- if .Values.clusterStatus.enabled }}
status:
  address: ":9467"
  certificate: /etc/edgeshare-status/tls.crt
  private_key: /etc/edgeshare-status/tls.key
  {{- if .Values.clusterStatus.page }}
  page_address: ":9469"
  {{- end }}
  managers:
    certificate: /etc/edgeshare-status-client/tls.crt
    private_key: /etc/edgeshare-status-client/tls.key
    authority: /etc/edgeshare-status-client/ca.crt
    service:
      namespace: {{ .Release.Namespace }}
      name: {{ .Release.Name }}-managers
{{- end }}
{{- if include "edgeshare.beside" . }}
{{- if not (hasKey .Values.assigner.config "choice") }}
# This scheduler places pods with a share alone: a node that was answered is kept for the pod, so that its bind finds the room there.
choice: filter
{{- end }}
address: "127.0.0.1:9443"
scheduler_lease:
  namespace: {{ .Release.Namespace }}
  name: {{ .Release.Name }}-scheduler
{{- else }}
address: ":9443"
lease:
  namespace: {{ .Release.Namespace }}
  name: {{ .Release.Name }}-assigner
service:
  namespace: {{ .Release.Namespace }}
  name: {{ .Release.Name }}-assigner
{{- if .Values.assigner.tls.enabled }}
tls:
  certificate: /etc/edgeshare-tls/tls.crt
  private_key: /etc/edgeshare-tls/tls.key
  client_authority: /etc/edgeshare-tls/ca.crt
  clients: {{ toJson .Values.assigner.tls.clients }}
{{- end }}
{{- end }}
{{- with .Values.assigner.config }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* kube-scheduler's, which asks the assigner in its own pod. */}}
{{- define "edgeshare.schedulerConfig" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceNamespace: {{ .Release.Namespace }}
  resourceName: {{ .Release.Name }}-scheduler
percentageOfNodesToScore: {{ .Values.scheduler.percentageOfNodesToScore }}
profiles:
  - schedulerName: {{ .Values.scheduler.name | quote }}
extenders:
  - urlPrefix: http://127.0.0.1:9443
    filterVerb: filter
    prioritizeVerb: prioritize
    bindVerb: bind
    preemptVerb: preempt
    weight: 10
    httpTimeout: 5s
    nodeCacheCapable: true
    managedResources:
      - name: edge/gpu-percent
      - name: edge/tpu-percent
{{- end }}

{{/* Of assigner and kube-scheduler, which have nothing to do with the node. */}}
{{- define "edgeshare.nobodyContext" -}}
runAsUser: 65532
runAsGroup: 65532
runAsNonRoot: true
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "edgeshare.schedulerContainer" -}}
- name: kube-scheduler
  image: {{ include "edgeshare.schedulerImage" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [kube-scheduler, --config=/etc/edgeshare/scheduler.yaml]
  ports:
    - name: scheduler
      containerPort: 10259
  securityContext:
    {{- include "edgeshare.nobodyContext" . | nindent 4 }}
  resources:
    {{- toYaml .Values.scheduler.resources | nindent 4 }}
  startupProbe:
    httpGet: {path: /healthz, port: scheduler, scheme: HTTPS}
    periodSeconds: 1
    failureThreshold: 180
  livenessProbe:
    httpGet: {path: /healthz, port: scheduler, scheme: HTTPS}
    periodSeconds: 60
    timeoutSeconds: 10
    failureThreshold: 3
  volumeMounts:
    - name: config
      mountPath: /etc/edgeshare
      readOnly: true
    - name: api-access
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
{{- end }}

{{/* As Kubernetes publishes it, of the cluster's version without what a distribution adds to that. */}}
{{- define "edgeshare.schedulerImage" -}}
{{- $version := semver .Capabilities.KubeVersion.Version }}
{{- $published := printf "registry.k8s.io/kube-scheduler:v%d.%d.%d" $version.Major $version.Minor $version.Patch }}
{{- .Values.scheduler.image | default $published }}
{{- end }}

{{- define "edgeshare.assignerImage" -}}
{{- with .Values.assigner.image }}
{{- .repository | default $.Values.image.repository }}:{{ .tag | default $.Values.image.tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
