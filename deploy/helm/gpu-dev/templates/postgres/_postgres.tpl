{{- define "gpu-dev.postgresSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 999
  runAsGroup: 999
  fsGroup: 999
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* One of the two servers: primary or replica. */}}
{{- define "gpu-dev.postgresServer" -}}
{{- $values := .root.Values.postgres }}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: postgres-{{ .kind }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    app: postgres
    gpu-dev/postgres: {{ .kind }}
    {{- include "gpu-dev.labels" .root | nindent 4 }}
spec:
  serviceName: postgres-{{ .kind }}
  # After a failover the old primary stays down: two that take writes would be two truths.
  replicas: {{ ternary 0 1 (and (eq .kind "primary") (eq $values.writer "replica")) }}
  selector:
    matchLabels: {app: postgres, gpu-dev/postgres: {{ .kind }}}
  template:
    metadata:
      labels:
        app: postgres
        gpu-dev/postgres: {{ .kind }}
        {{- include "gpu-dev.labels" .root | nindent 8 }}
      annotations:
        checksum/config: {{ (.root.Files.Glob "files/postgres/*").AsConfig | sha256sum }}
    spec:
      serviceAccountName: gpu-dev-backing
      automountServiceAccountToken: false
      {{- include "gpu-dev.postgresSecurity" .root | nindent 6 }}
      {{- with $values.nodeSelector }}
      nodeSelector: {{ toJson . }}
      {{- end }}
      {{- include "gpu-dev.spread" (dict "app" "postgres") | nindent 6 }}
      terminationGracePeriodSeconds: 120
      containers:
        - name: postgres
          image: {{ $values.image }}
          command: [/bin/sh, /etc/gpu-dev/postgres/start.sh, {{ .kind }}]
          env:
            - {name: PGDATA, value: /var/lib/postgresql/data/pgdata}
            - {name: CONFIG_DIR, value: /etc/gpu-dev/postgres}
            - {name: SOCKET_DIR, value: /var/run/postgresql}
            - {name: PORT, value: "5432"}
            - {name: PRIMARY_HOST, value: postgres-primary}
            - {name: PRIMARY_PORT, value: "5432"}
            - name: SYNCHRONOUS_STANDBYS
              value: {{ ternary "ANY 1 (gpu_dev_replica)" "" (and (eq .kind "primary") $values.synchronous) | quote }}
            - name: POSTGRES_PASSWORD
              valueFrom:
                secretKeyRef: {name: {{ include "gpu-dev.credentialsSecret" .root }}, key: POSTGRES_PASSWORD}
            - name: REPLICATION_PASSWORD
              valueFrom:
                secretKeyRef: {name: {{ include "gpu-dev.replicationSecret" .root }}, key: REPLICATION_PASSWORD}
            - {name: TLS_DIR, value: /etc/postgres-tls}
            {{- include "gpu-dev.databaseTls" .root | nindent 12 }}
          ports:
            - {name: postgres, containerPort: 5432}
          # Whatever signal the image asks for: it does not wait until its clients, who stay, have gone.
          lifecycle:
            preStop:
              exec: {command: [pg_ctl, stop, --mode=fast, --pgdata=/var/lib/postgresql/data/pgdata]}
          # The first start of a replica copies the whole primary.
          startupProbe:
            exec: {command: [pg_isready, --host=/var/run/postgresql, --username=gpudev]}
            periodSeconds: 5
            failureThreshold: 720
          readinessProbe:
            exec: {command: [pg_isready, --host=/var/run/postgresql, --username=gpudev]}
            periodSeconds: 5
          livenessProbe:
            tcpSocket: {port: postgres}
            periodSeconds: 20
            failureThreshold: 6
          resources: {{ toJson $values.resources }}
          {{- include "gpu-dev.containerSecurity" .root | nindent 10 }}
          volumeMounts:
            - {name: data, mountPath: /var/lib/postgresql/data}
            - {name: config, mountPath: /etc/gpu-dev/postgres, readOnly: true}
            - {name: socket, mountPath: /var/run/postgresql}
            - {name: postgres-tls, mountPath: /etc/postgres-tls, readOnly: true}
            {{- include "gpu-dev.databaseCaMount" .root | nindent 12 }}
            - {name: shared-memory, mountPath: /dev/shm}
            - {name: tmp, mountPath: /tmp}
      volumes:
        - name: config
          configMap: {name: postgres-config}
        - name: socket
          emptyDir: {}
        - name: postgres-tls
          secret:
            secretName: {{ include "gpu-dev.tlsSecret" .root }}
            items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
            # Of root and of the server's group, which is all that PostgreSQL accepts of a key that is not its own.
            defaultMode: 0440
        {{- include "gpu-dev.databaseCaVolume" .root | nindent 8 }}
        - name: shared-memory
          emptyDir: {medium: Memory, sizeLimit: 1Gi}
        - name: tmp
          emptyDir: {}
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes: [ReadWriteOnce]
        {{- with $values.storage.className }}
        storageClassName: {{ . }}
        {{- end }}
        resources:
          requests: {storage: {{ $values.storage.size }}}
{{- end }}

{{/* A job with the programs of PostgreSQL and the folder of backups. */}}
{{- define "gpu-dev.postgresJob" -}}
apiVersion: batch/v1
kind: CronJob
metadata:
  name: postgres-{{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    app: postgres-{{ .name }}
    {{- include "gpu-dev.labels" .root | nindent 4 }}
spec:
  schedule: {{ .root.Values.postgres.backup.schedule | quote }}
  suspend: {{ .suspend }}
  concurrencyPolicy: Forbid
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec:
      activeDeadlineSeconds: 7200
      backoffLimit: {{ .retries }}
      template:
        metadata:
          labels:
            app: postgres-{{ .name }}
            gpu-dev/uses-database: "true"
        spec:
          serviceAccountName: gpu-dev-backing
          automountServiceAccountToken: false
          restartPolicy: Never
          {{- include "gpu-dev.postgresSecurity" .root | nindent 10 }}
          {{- with .root.Values.postgres.nodeSelector }}
          nodeSelector: {{ toJson . }}
          {{- end }}
          containers:
            - name: {{ .name }}
              image: {{ .root.Values.postgres.image }}
              command: [/bin/sh, /etc/gpu-dev/postgres/{{ .name }}.sh]
              env:
                - {name: PGHOST, value: postgres-primary}
                - {name: PGPORT, value: "5432"}
                - {name: PGUSER, value: gpudev}
                - {name: PGDATABASE, value: gpudev}
                {{- include "gpu-dev.databaseTls" .root | nindent 16 }}
                - name: PGPASSWORD
                  valueFrom:
                    secretKeyRef: {name: {{ include "gpu-dev.credentialsSecret" .root }}, key: POSTGRES_PASSWORD}
                - {name: BACKUP_DIR, value: /backups}
                - {name: BACKUPS_KEPT, value: {{ .root.Values.postgres.backup.keep | quote }}}
              resources:
                requests: {cpu: 100m, memory: 256Mi}
                limits: {memory: 1Gi}
              {{- include "gpu-dev.containerSecurity" .root | nindent 14 }}
              volumeMounts:
                - {name: backups, mountPath: /backups}
                - {name: config, mountPath: /etc/gpu-dev/postgres, readOnly: true}
                {{- include "gpu-dev.databaseCaMount" .root | nindent 16 }}
                - {name: tmp, mountPath: /tmp}
          volumes:
            - name: backups
              persistentVolumeClaim: {claimName: postgres-backups}
            - name: config
              configMap: {name: postgres-config}
            {{- include "gpu-dev.databaseCaVolume" .root | nindent 12 }}
            - name: tmp
              emptyDir: {}
{{- end }}
