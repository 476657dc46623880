{{- define "supercargo.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "supercargo.fullname" -}}
{{- $name := include "supercargo.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "supercargo.account" -}}
{{- default (include "supercargo.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "supercargo.selector" -}}
app.kubernetes.io/name: {{ include "supercargo.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "supercargo.labels" -}}
{{ include "supercargo.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: scheduler
{{- end -}}

{{/* Whether anything listens: a shadow serves metrics only for those who want to read them. */}}
{{- define "supercargo.serves" -}}
{{- if or (ne .Values.mode "shadow") .Values.service .Values.serviceMonitor.enabled }}true{{ end -}}
{{- end -}}

{{- define "supercargo.replicas" -}}
{{- if eq .Values.mode "shadow" }}1{{ else }}{{ .Values.replicas }}{{ end -}}
{{- end -}}

{{/* The ConfigMap in which plugins save what they remember: named after the lease, or after the first profile if there is none. */}}
{{- define "supercargo.memories" -}}
{{- $config := include "supercargo.config" . | fromYaml -}}
{{- $election := $config.leaderElection -}}
{{- printf "%s-memories" (ternary $election.resourceName (first $config.profiles).schedulerName $election.leaderElect) -}}
{{- end -}}

{{/* The configuration: what is given, over what fits the mode. */}}
{{- define "supercargo.config" -}}
{{- $own := include "supercargo.fullname" . -}}
{{- $election := dict "leaderElect" true "resourceNamespace" .Release.Namespace "resourceName" $own -}}
{{- $scheduler := $own -}}
{{- if ne .Values.mode "second" -}}
{{- $scheduler = "default-scheduler" -}}
{{- $election = dict "leaderElect" true "resourceNamespace" "kube-system" "resourceName" "kube-scheduler" -}}
{{- end -}}
{{- if eq .Values.mode "shadow" -}}
{{- $election = dict "leaderElect" false -}}
{{- end -}}
{{- $profiles := list (dict "schedulerName" (default $scheduler .Values.schedulerName)) -}}
{{- $config := dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" "leaderElection" $election "profiles" $profiles -}}
{{- toYaml (mergeOverwrite $config (deepCopy .Values.config)) -}}
{{- end -}}
