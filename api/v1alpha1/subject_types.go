package v1alpha1

// SenderSubject is a caller, or a group of them, as the API server knows them by their tokens.
//
// +kubebuilder:validation:XValidation:rule="!has(self.__namespace__) || self.kind == 'ServiceAccount'",message="spec.senders.subjects.namespace belongs to a ServiceAccount only"
type SenderSubject struct {
	// kind says what name is the name of.
	// +required
	Kind SubjectKind `json:"kind"`

	// name is that of the service account, the group or the user.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace is the service account's. Empty: the pool's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}

// SubjectKind says what a subject is.
//
// +kubebuilder:validation:Enum=ServiceAccount;Group;User
type SubjectKind string

const (
	// SubjectServiceAccount is one service account.
	SubjectServiceAccount SubjectKind = "ServiceAccount"
	// SubjectGroup is everybody of a group, such as system:serviceaccounts:rl.
	SubjectGroup SubjectKind = "Group"
	// SubjectUser is one user by name.
	SubjectUser SubjectKind = "User"
)
