// What schema tools written in Go make of a database: as tools.mjs, for ent, which
// compares by Atlas, and XORM.
package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	"entgo.io/ent/schema/field"
	_ "github.com/lib/pq"
	"xorm.io/xorm"
)

func entTables() []*schema.Table {
	id := &schema.Column{Name: "id", Type: field.TypeInt, Increment: true}
	email := &schema.Column{Name: "email", Type: field.TypeString, Unique: true}
	name := &schema.Column{Name: "name", Type: field.TypeString}
	authors := &schema.Table{Name: "authors", Columns: []*schema.Column{id, email, name},
		PrimaryKey: []*schema.Column{id},
		Indexes:    []*schema.Index{{Name: "author_name", Columns: []*schema.Column{name}}}}
	post := &schema.Column{Name: "id", Type: field.TypeInt, Increment: true}
	title := &schema.Column{Name: "title", Type: field.TypeString}
	author := &schema.Column{Name: "author_id", Type: field.TypeInt}
	posts := &schema.Table{Name: "posts", Columns: []*schema.Column{post, title, author},
		PrimaryKey: []*schema.Column{post},
		Indexes:    []*schema.Index{{Name: "post_title", Unique: true, Columns: []*schema.Column{title, author}}},
		ForeignKeys: []*schema.ForeignKey{{Symbol: "post_author", Columns: []*schema.Column{author},
			RefColumns: []*schema.Column{id}, RefTable: authors}}}
	return []*schema.Table{authors, posts}
}

func entMigrate(driver dialect.Driver) error {
	migrate, err := schema.NewMigrate(driver)
	if err != nil {
		return err
	}
	return migrate.Create(context.Background(), entTables()...)
}

func ent(dsn string) (string, error) {
	var planned strings.Builder
	driver, err := entsql.Open(dialect.Postgres, dsn)
	if err != nil {
		return "", err
	}
	defer driver.Close()
	if err := entMigrate(&schema.WriteDriver{Driver: driver, Writer: &planned}); err != nil {
		return "", err
	}
	return planned.String(), entMigrate(driver)
}

type Author struct {
	Id    int64
	Email string `xorm:"unique"`
	Name  string `xorm:"index"`
}

// Which indexes there are tells whether Sync has made one again.
func xormSync(dsn string) (string, error) {
	engine, err := xorm.NewEngine("postgres", dsn)
	if err != nil {
		return "", err
	}
	defer engine.Close()
	indexes := func() string {
		rows, _ := engine.QueryString("SELECT string_agg(oid::text, ' ' ORDER BY oid) AS oids FROM pg_class" +
			" WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace")
		return rows[0]["oids"]
	}
	before := indexes()
	if err = engine.Sync(new(Author)); err == nil && indexes() != before {
		return "CREATE INDEX", nil
	}
	return "", err
}

func main() {
	action, kind := os.Args[1], os.Args[2]
	changes := regexp.MustCompile(`(?m)^(CREATE .*INDEX|DROP INDEX|ALTER .* DROP CONSTRAINT .*_pkey)`)
	for _, tool := range []struct {
		name string
		run  func(string) (string, error)
	}{{"ent", ent}, {"xorm", xormSync}} {
		statements, err := tool.run(fmt.Sprintf("dbname=%s_%s sslmode=disable", tool.name, kind))
		if err != nil {
			fmt.Printf("%s: %s\n", tool.name, strings.Split(err.Error(), "\n")[0])
		} else if action == "again" {
			fmt.Printf("%s: %d\n", tool.name, len(changes.FindAllString(statements, -1)))
		}
	}
}
