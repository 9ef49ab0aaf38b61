{{- define "hvdrun.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains .Chart.Name .Release.Name) -}}{{- $name = printf "%s-%s" .Release.Name .Chart.Name -}}{{- end -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "hvdrun.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "hvdrun.workerLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: worker
{{- end -}}

{{- define "hvdrun.image" -}}
{{- $image := merge (deepCopy .image) .root.Values.image -}}
{{- printf "%s:%s" $image.repository ($image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}

{{- define "hvdrun.pullPolicy" -}}
{{- (merge (deepCopy .image) .root.Values.image).pullPolicy -}}
{{- end -}}

{{/* Ranks of one worker. */}}
{{- define "hvdrun.slots" -}}
{{- $limits := .Values.resources.limits | default dict -}}
{{- $requests := .Values.resources.requests | default dict -}}
{{- $gpus := (get $limits "nvidia.com/gpu") | default (get $requests "nvidia.com/gpu") -}}
{{- .Values.worker.slots | default $gpus | default 1 | int -}}
{{- end -}}

{{- define "hvdrun.hostfile" -}}
{{- $name := include "hvdrun.name" . -}}
{{- $slots := include "hvdrun.slots" . -}}
{{- if .Values.driver.asWorker }}
localhost slots={{ $slots }}
{{- end }}
{{- range $i := until (int .Values.worker.number) }}
{{ $name }}-{{ $i }}.{{ $name }} slots={{ $slots }}
{{- end }}
{{- end -}}

{{/* What both kinds of pods have. */}}
{{- define "hvdrun.podSettings" -}}
hostNetwork: {{ .Values.useHostNetwork }}
hostPID: {{ .Values.useHostPID }}
{{- if .Values.useHostNetwork }}
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext: {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- end -}}

{{- define "hvdrun.volumes" -}}
- name: hvdrun-files
  configMap:
    name: {{ include "hvdrun.name" . }}
    defaultMode: 0555
- name: hvdrun-ssh
  secret:
    secretName: {{ include "hvdrun.name" . }}-ssh
    defaultMode: 0440
- name: hvdrun-shm
  emptyDir:
    medium: Memory
    sizeLimit: {{ .Values.shm.sizeLimit }}
{{- with .Values.volumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "hvdrun.volumeMounts" -}}
- name: hvdrun-files
  mountPath: /etc/hvdrun
  readOnly: true
- name: hvdrun-ssh
  mountPath: /etc/hvdrun-ssh
  readOnly: true
- name: hvdrun-shm
  mountPath: /dev/shm
{{- with .Values.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}
