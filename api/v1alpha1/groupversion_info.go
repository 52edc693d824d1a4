package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion names this package's API group and version.
var GroupVersion = schema.GroupVersion{Group: "inference.berthmaster.io", Version: "v1alpha1"}

// Names of the resource as the API server, role rules and command lines spell them.
const (
	// InferencePoolKind is the kind in manifests.
	InferencePoolKind = "InferencePool"
	// InferencePoolResource is the plural of the resource in URLs and role rules.
	InferencePoolResource = "inferencepools"
)

// AddToScheme registers the kinds of this package. It fails only when the scheme already knows
// one of them as another Go type.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &InferencePool{}, &InferencePoolList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
