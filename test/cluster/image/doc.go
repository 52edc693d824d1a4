// Package image writes container images without a container engine: one layer of files in an
// archive of the OCI image layout, as "ctr images import" reads it. Equal files make equal archives.
package image
