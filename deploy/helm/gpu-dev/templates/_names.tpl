{{/* Labels of everything. */}}
{{- define "gpu-dev.labels" -}}
app.kubernetes.io/part-of: gpu-dev
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "gpu-dev.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "gpu-dev.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "gpu-dev.credentialsSecret" -}}
{{ .Values.postgres.credentialsSecret | default "postgres-credentials" }}
{{- end }}

{{- define "gpu-dev.appSecret" -}}
{{ .Values.postgres.appSecret | default "postgres-app" }}
{{- end }}

{{- define "gpu-dev.tlsSecret" -}}
{{ .Values.postgres.tlsSecret | default "postgres-tls" }}
{{- end }}

{{- define "gpu-dev.replicationSecret" -}}
{{ .Values.postgres.replicationSecret | default "postgres-replication" }}
{{- end }}

{{/* A rule of deploy/kubernetes/rbac.yaml, by kind and name: the one place that says who may do what. */}}
{{- define "gpu-dev.rules" -}}
{{- $found := "" }}
{{- range $document := splitList "\n---" (.files.Get "files/rbac.yaml") }}
{{- $object := fromYaml $document }}
{{- if and (eq $object.kind $.kind) (eq $object.metadata.name $.name) }}
{{- $found = toYaml $object.rules }}
{{- end }}
{{- end }}
{{- required (printf "rbac.yaml has no %s %s" .kind .name) $found }}
{{- end }}
