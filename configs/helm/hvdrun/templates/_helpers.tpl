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
{{- printf "%s:%s" $image.repository (required "image.tag is missing" $image.tag) -}}
{{- end -}}

{{- define "hvdrun.pullPolicy" -}}
{{- (merge (deepCopy .image) .root.Values.image).pullPolicy -}}
{{- end -}}

{{/* Whether the job is elastic: "yes" or nothing. */}}
{{- define "hvdrun.elastic" -}}
{{- $min := int .Values.elastic.minNp -}}
{{- $max := int .Values.elastic.maxNp -}}
{{- if and (eq $min 0) (ne $max 0) }}{{ fail "elastic.maxNp is of an elastic job: set elastic.minNp, too" }}{{ end -}}
{{- if and (ne $max 0) (lt $max $min) }}{{ fail "elastic.maxNp is less than elastic.minNp" }}{{ end -}}
{{- if gt $min 0 }}yes{{ end -}}
{{- end -}}

{{/* Ranks of a pod with these `resources`. */}}
{{- define "hvdrun.slots" -}}
{{- $limits := .resources.limits | default dict -}}
{{- $requests := .resources.requests | default dict -}}
{{- $gpus := (get $limits "nvidia.com/gpu") | default (get $requests "nvidia.com/gpu") -}}
{{- .root.Values.worker.slots | default $gpus | default 1 | int -}}
{{- end -}}

{{/* A launcher that runs ranks needs what a worker needs. */}}
{{- define "hvdrun.driverResources" -}}
{{- if .Values.driver.resources }}{{ toYaml .Values.driver.resources }}
{{- else if .Values.driver.asWorker }}{{ toYaml .Values.resources }}
{{- else }}
requests: {cpu: 250m, memory: 256Mi}
limits: {cpu: "1", memory: 2Gi}
{{- end }}
{{- end -}}

{{/* The command of each rank. */}}
{{- define "hvdrun.command" -}}
{{- $example := ternary "pytorch_elastic_digits.py" "pytorch_digits.py" (eq (include "hvdrun.elastic" .) "yes") -}}
{{- .Values.driver.args | default (list "python3" (printf "/examples/%s" $example)) | toYaml -}}
{{- end -}}

{{- define "hvdrun.hostfile" -}}
{{- $name := include "hvdrun.name" . -}}
{{- $slots := include "hvdrun.slots" (dict "root" . "resources" .Values.resources) -}}
{{- if .Values.driver.asWorker }}
localhost slots={{ include "hvdrun.slots" (dict "root" . "resources" (include "hvdrun.driverResources" . | fromYaml)) }}
{{- end }}
{{- range $i := until (int .Values.worker.number) }}
{{ $name }}-{{ $i }}.{{ $name }} slots={{ $slots }}
{{- end }}
{{- end -}}

{{/* The user's labels of both kinds of pods, which may not hide those that tell one kind from the other. */}}
{{- define "hvdrun.podLabels" -}}
{{- range list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" -}}
{{- if hasKey $.Values.podLabels . }}{{ fail (printf "podLabels: the chart finds its pods by the label %s; choose another one" .) }}{{ end -}}
{{- end -}}
{{- with .Values.podLabels }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* Of a container that is `privileged` or not. */}}
{{- define "hvdrun.securityContext" -}}
privileged: {{ . }}
allowPrivilegeEscalation: {{ . }}
{{- if not . }}
capabilities:
  drop: [ALL]
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
