{{- define "berthmaster.labels" -}}
app.kubernetes.io/name: berthmaster
{{- end }}

{{- define "berthmaster.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
