// Package v1alpha1 is the custom resource inferencepools.inference.berthmaster.io: a pool of
// SGLang replicas, the promises its users get from the lease router, and what the operator
// found and did.
//
// Conventions that hold for every field:
//
//   - durations are whole seconds and say so in their name;
//   - choices are enumerations, never booleans; there are no fractions;
//   - every string, list and number has a bound;
//   - an empty optional field means what its comment says: the schema writes no defaults into the
//     object, so that the fields a person did not set have no owner and several field managers can
//     apply their own entries;
//   - rules that compare old and new sit on the spec as a whole, because a rule on a part is not
//     evaluated when the part is removed and added again.
//
// Another project defines a kind of the same name in another group: name the resource in full
// wherever a person or a script may have both.
//
// +kubebuilder:object:generate=true
// +groupName=inference.berthmaster.io
package v1alpha1
