{{/* What every pod of the control plane has: no root, no privileges, no writable root file system. */}}
{{- define "gpu-dev.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "gpu-dev.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* The settings, and the database with its password. A change of a setting starts the pods anew. */}}
{{- define "gpu-dev.environment" -}}
envFrom:
  - configMapRef: {name: gpu-dev-settings}
  {{- with .Values.settingsSecret }}
  - secretRef: {name: {{ . }}}
  {{- end }}
  {{- if not .Values.postgres.enabled }}
  - secretRef: {name: {{ required "externalDatabase.secret is needed without postgres" .Values.externalDatabase.secret }}}
  {{- end }}
{{- if .Values.postgres.enabled }}
env:
  {{- include "gpu-dev.databaseEnvironment" . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The service owns nothing in the database. In the pod and not in the settings: a pod of an earlier version that
     restarts during an upgrade reads the new settings, and has the old password. */}}
{{- define "gpu-dev.databaseEnvironment" -}}
- {name: POSTGRES_USER, value: gpudev_app}
- name: POSTGRES_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ include "gpu-dev.appSecret" . }}, key: APP_PASSWORD}
{{ include "gpu-dev.databaseTls" . }}
{{- if eq .Values.postgres.writer "primary" }}
- name: GPU_DEV_DATABASE_REPLICA_URL
  value: postgresql://gpudev_app:$(POSTGRES_PASSWORD)@postgres-replica:5432/gpudev
{{- end }}
{{- end }}

{{/* How a client of the chart's PostgreSQL verifies it. */}}
{{- define "gpu-dev.databaseTls" -}}
- {name: PGSSLMODE, value: verify-full}
- {name: PGSSLROOTCERT, value: /etc/postgres-ca/ca.crt}
{{- end }}

{{- define "gpu-dev.databaseCaMount" -}}
- {name: postgres-ca, mountPath: /etc/postgres-ca, readOnly: true}
{{- end }}

{{- define "gpu-dev.databaseCaVolume" -}}
- name: postgres-ca
  secret:
    secretName: {{ include "gpu-dev.tlsSecret" . }}
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}

{{- define "gpu-dev.checksum" -}}
checksum/settings: {{ include (print .Template.BasePath "/settings.yaml") . | sha256sum }}
{{- end }}

{{- define "gpu-dev.mounts" -}}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- if .Values.postgres.enabled }}
  {{- include "gpu-dev.databaseCaMount" . | nindent 2 }}
  {{- end }}
  {{- if .Values.devServers.gpuTypes }}
  - {name: gpu-types, mountPath: /etc/gpu-dev, readOnly: true}
  {{- end }}
{{- end }}

{{- define "gpu-dev.volumes" -}}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: 256Mi}
  {{- if .Values.postgres.enabled }}
  {{- include "gpu-dev.databaseCaVolume" . | nindent 2 }}
  {{- end }}
  {{- if .Values.devServers.gpuTypes }}
  - name: gpu-types
    configMap: {name: gpu-dev-gpu-types}
  {{- end }}
{{- end }}

{{/* Two pods of one kind rather on two nodes, and in two zones. */}}
{{- define "gpu-dev.spread" -}}
topologySpreadConstraints:
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {app: {{ $.app }}}
  {{- end }}
{{- end }}

{{/* One command of the control plane, at set times, never twice at once. */}}
{{- define "gpu-dev.cronJob" -}}
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    app: {{ .name }}
    {{- include "gpu-dev.labels" .root | nindent 4 }}
spec:
  schedule: {{ .schedule | quote }}
  concurrencyPolicy: Forbid
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec:
      activeDeadlineSeconds: 600
      backoffLimit: 1
      template:
        metadata:
          labels:
            app: {{ .name }}
            gpu-dev/uses-database: "true"
        spec:
          serviceAccountName: gpu-dev-controller
          restartPolicy: Never
          {{- include "gpu-dev.podSecurity" .root | nindent 10 }}
          {{- include "gpu-dev.pullSecrets" .root | nindent 10 }}
          containers:
            - name: {{ .name }}
              image: {{ include "gpu-dev.image" .root }}
              imagePullPolicy: {{ .root.Values.image.pullPolicy }}
              args: {{ toJson (prepend .arguments "server") }}
              {{- include "gpu-dev.environment" .root | nindent 14 }}
              resources:
                requests: {cpu: 50m, memory: 128Mi}
                limits: {memory: 512Mi}
              {{- include "gpu-dev.containerSecurity" .root | nindent 14 }}
              {{- include "gpu-dev.mounts" .root | nindent 14 }}
          {{- include "gpu-dev.volumes" .root | nindent 10 }}
{{- end }}
